"""The translations, and what finds the sentences that Babel's own extractors do not see."""
