"""Programs and formats outside: harnesses, ALF archives, schedulers, and the doctor that checks the installation."""
