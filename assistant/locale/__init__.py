"""The translations, and extractors for the sentences that Babel's own do not see."""
