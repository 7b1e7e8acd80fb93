alter table tenant_limits add column quotas text not null default '{}';
