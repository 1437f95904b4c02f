"""The nouns: machine, plan, finding, event, report, errors. Frozen records; nothing here touches the machine."""
