"""What is wrong, or soon will be, with an installation: it looks, says what to do, and changes nothing."""
