alter table tenant_limits add column quotas text collate "C" not null default '{}';
