create index entities_by_change on entities (blueprint, updated, created, seq);
