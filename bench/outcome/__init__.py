"""Does verified memory keep agents from acting on what is no longer so: python -m bench outcome."""
