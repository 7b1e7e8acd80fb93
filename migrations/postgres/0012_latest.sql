create index entities_by_change on entities (tenant_id, blueprint, updated, created, seq);
