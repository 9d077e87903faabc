"""Who a node is: certificates, invitations to a mesh, revocation, and the TLS that proves it to other nodes."""
