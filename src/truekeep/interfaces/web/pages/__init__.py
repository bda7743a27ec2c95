"""The pages, one module each: `routes(site)` gives what a page answers to."""
