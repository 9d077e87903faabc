"""What `ringcast bench spark` asks beside the speed of the tags: of the lake, and of what is found and learnt."""
