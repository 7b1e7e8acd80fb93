-- What takes something off a price.
create table coupons (
  _id text not null primary key,
  code text not null,
  code_key text not null unique,
  discount text not null,
  currency text,
  max_redemptions integer,
  current_redemptions integer not null,
  valid_from integer,
  valid_until integer,
  benefit text,
  applicable_plan_ids text not null,
  is_active integer not null,
  created integer not null,
  updated integer not null
) strict;

create index coupons_by_time on coupons (created, _id);

-- What was or is to be paid, as providers tell it.
create table invoices (
  _id text not null primary key,
  subscription_id text not null,
  billable_entity_type text not null,
  billable_entity_id text not null,
  amount integer not null,
  currency text not null,
  status text not null,
  provider_kind text not null,
  external_invoice_id text not null,
  invoice_url text,
  paid_at integer,
  period_start integer,
  period_end integer,
  items text not null,
  created integer not null,
  updated integer not null
) strict;

create unique index invoices_at_provider on invoices (provider_kind, external_invoice_id);

create index invoices_of_entity on invoices (billable_entity_type, billable_entity_id, created, _id);

create index invoices_of_subscription on invoices (subscription_id, created);

create index invoices_by_time on invoices (created, _id);

-- What can be subscribed to.
create table plans (
  _id text not null primary key,
  name text not null,
  description text not null,
  monthly_price integer,
  yearly_price integer,
  currency text not null,
  dynamic integer not null,
  is_active integer not null,
  features text not null,
  sort_order integer not null,
  limits text not null,
  metadata text not null,
  external_ids text not null,
  created integer not null,
  updated integer not null
) strict;

create index plans_by_order on plans (is_active, sort_order, monthly_price);

create index plans_by_time on plans (created, _id);

-- What providers have told, as it came.
create table provider_events (
  _id text not null primary key,
  provider_kind text not null,
  event_id text not null,
  type text not null,
  source text,
  body text not null,
  status text not null,
  occurred_at integer not null,
  attempts integer not null,
  next_at integer,
  subscription_id text,
  external_subscription_id text,
  outcome text,
  created integer not null,
  updated integer not null
) strict;

create unique index provider_events_once on provider_events (provider_kind, event_id);

create index provider_events_due on provider_events (next_at) where next_at is not null;

create index provider_events_by_status on provider_events (status, created, _id);

create index provider_events_by_time on provider_events (created, _id);

create index provider_events_of_subscription on provider_events (subscription_id, created);

-- Which subscription has redeemed which coupon.
create table redemptions (
  subscription text not null,
  coupon text not null,
  created integer not null,
  primary key (subscription, coupon)
) strict;

-- Who pays for which plan: one at a time is in force.
create table subscriptions (
  _id text not null primary key,
  plan_id text not null,
  billable_entity_type text not null,
  billable_entity_id text not null,
  status text not null,
  billing_cycle text not null,
  currency text not null,
  base_price integer,
  dynamic_amount integer,
  coupon_id text,
  coupon_code text,
  discount text,
  coupon_benefit_ends_at integer,
  current_period_start integer,
  current_period_end integer,
  trial_ends_at integer,
  past_due_since integer,
  cancel_at_period_end integer not null,
  cancel_requested integer,
  provider_kind text,
  provider_source_id text,
  external_subscription_id text,
  external_checkout_id text,
  checkout_until integer,
  checkout_amount integer,
  failed_checkouts integer not null,
  last_event_at integer,
  metadata text not null,
  created integer not null,
  updated integer not null
) strict;

create unique index subscriptions_in_force on subscriptions (billable_entity_type, billable_entity_id) where status in ('active', 'trialing');

create unique index subscriptions_at_provider on subscriptions (provider_kind, external_subscription_id) where external_subscription_id is not null;

create index subscriptions_of_entity on subscriptions (billable_entity_type, billable_entity_id, created, _id);

create index subscriptions_of_plan on subscriptions (plan_id, created, _id);

create index subscriptions_by_status on subscriptions (status, created, _id);

create index subscriptions_by_time on subscriptions (created, _id);
