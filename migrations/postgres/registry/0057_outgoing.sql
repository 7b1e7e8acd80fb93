alter table tenants add column outgoing_held bigint;
