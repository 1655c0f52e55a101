"""Scale-out: one front over replicas of the whole server, which Ray Serve places, watches and replaces.

Ray is imported in `deployment` and `router` alone, and only when a server is scaled out.
"""
