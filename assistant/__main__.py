"""`python -m assistant` is the command `assistant`."""

from torch_setup_assistant import main

if __name__ == "__main__":
    main()
