-- What providers have told of subscriptions that are not known yet is found when they turn up.
create index provider_events_parked on provider_events (external_subscription_id) where status = 'parked';
