"""Pages for people: the site that `truekeep serve` opens. Everything that it does is a verb of the desk."""
