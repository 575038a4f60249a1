"""`python -m remembrancer.services.cli`, for where the command itself is not on the path."""

from remembrancer.services.cli import main

if __name__ == "__main__":
    main()
