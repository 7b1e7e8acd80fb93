-- An event that names only a checkout is known by it.
create index subscriptions_of_checkout on subscriptions (tenant_id, external_checkout_id)
  where external_checkout_id is not null;
