create index users_by_time on users (tenant_id, created, _id);
