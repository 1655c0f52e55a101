"""What the outside learns of the server: listeners of the runtime's observer port."""
