create index provider_events_parked on provider_events (tenant_id, external_subscription_id) where status = 'parked';
