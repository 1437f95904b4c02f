"""The joint decision of hardware and resolver, judged: real requirement sets, a mirrored index, expected answers."""
