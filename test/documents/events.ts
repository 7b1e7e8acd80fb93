/** An event that the system records: `metadata` names the properties that it always has. */
export type DocumentedEvent = { source: string; kind: string; name: string; when: string; metadata: string }

const event = (source: string, kind: string, name: string, when: string, metadata: string): DocumentedEvent => ({
  source,
  kind,
  name,
  when,
  metadata,
})

const USER = 'user, username, roles'
const SUBSCRIPTION = 'subscriptionId, planId, billableEntityType, billableEntityId'
const INVOICE = 'invoiceId, subscriptionId, externalInvoiceId, providerKind'
const IMPORT = 'import, imported, failed, received, size'
const COMPLETION = 'usage, integration, model, status, promptTokens, completionTokens, cost, durationMs'
const KEY = '<blueprint>'

const QUOTA = 'quota, limit, used'

export const EVENTS: DocumentedEvent[] = [
  event('accounts', 'user', 'user-registered', 'Somebody signed up.', USER),
  event('accounts', 'user', 'user-created', 'An admin created a user.', USER),
  event(
    'accounts',
    'user',
    'user-updated',
    'A profile, role, password, passkey, identity or second factor changed.',
    `${USER}, changed`,
  ),
  event('accounts', 'user', 'user-removed', 'An admin deleted a user.', USER),
  event('accounts', 'support', 'support-opened', 'The operator opened the tenant for support.', 'reason'),
  event('accounts', 'signin', 'signin-failed', 'A limit of failed sign-ins was reached.', 'about, user, of, attempts'),
  event(
    ...(['accounts', 'signin', 'strangers-slowed'] as const),
    'So many people whom the tenant does not know asked to sign up, to sign in by e-mail or for a new password in an hour that each further request waits three seconds. At most one an hour.',
    'action, requests',
  ),
  event(
    ...(['accounts', 'impersonation', 'impersonation', 'An admin wrote something as another user.'] as const),
    'impersonator, user, method, path, requestId',
  ),
  event('accounts', 'workspace', 'workspace-created', 'A workspace was created.', 'name'),
  event('accounts', 'workspace', 'workspace-deleted', 'A workspace was deleted.', 'name'),
  event('accounts', 'invite', 'invite-created', 'Somebody was invited to a workspace.', 'invite, email, roles'),
  event('accounts', 'invite', 'invite-accepted', 'An invitation was accepted.', 'invite, email, roles'),
  event('accounts', 'invite', 'invite-declined', 'An invitation was declined.', 'invite, email, roles'),
  event(
    'blueprints',
    KEY,
    'create',
    'An entity was created, if the blueprint dispatches it.',
    '_id, identifier, version',
  ),
  event(
    'blueprints',
    KEY,
    'update',
    'An entity was changed, if the blueprint dispatches it.',
    '_id, identifier, version, changed',
  ),
  event(
    'blueprints',
    KEY,
    'delete',
    'An entity was deleted, if the blueprint dispatches it.',
    '_id, identifier, version',
  ),
  event('blueprints', KEY, 'import-started', 'An import takes longer than a second.', IMPORT),
  event('blueprints', KEY, 'import-progress', 'A long import goes on; once a second at most.', IMPORT),
  event('blueprints', KEY, 'import-finished', 'A long import ended.', IMPORT),
  event('blueprints', KEY, 'import-failed', 'A long import was refused or broke off.', IMPORT),
  event('ai', 'completion', 'completion', 'A model answered.', COMPLETION),
  event('ai', 'completion', 'failure', 'A completion failed or was aborted.', COMPLETION),
  event(
    'plugins',
    'plugin',
    'delivery-failed',
    'A delivery to a plugin was given up.',
    'plugin, delivery, event, hookUrl, status',
  ),
  event(
    'plugins',
    'lambda',
    'lambda-failed',
    'A lambda failed at a webhook; once a minute at most.',
    'lambda, name, version, code',
  ),
  event(
    'plugins',
    'integration',
    'lambda-failed',
    'A run of a lambda was given up.',
    'integration, run, attempts, outcome',
  ),
  event(
    'plugins',
    'integration',
    'delivery-failed',
    'A run of another target was given up.',
    'integration, run, attempts, outcome',
  ),
  event(
    'plugins',
    'schedule',
    'due',
    'A schedule is due. Only its target sees this event; it is not stored.',
    'integration, due',
  ),
  event('payments', 'subscription', 'subscription-created', 'A subscription waits for its checkout.', SUBSCRIPTION),
  event('payments', 'subscription', 'subscription-activated', 'A subscription became active.', SUBSCRIPTION),
  event('payments', 'subscription', 'subscription-trialing', 'A trial began.', SUBSCRIPTION),
  event('payments', 'subscription', 'subscription-renewed', 'A new period began.', SUBSCRIPTION),
  event('payments', 'subscription', 'subscription-past-due', 'A payment failed.', SUBSCRIPTION),
  event('payments', 'subscription', 'subscription-canceled', 'A subscription was canceled.', SUBSCRIPTION),
  event('payments', 'subscription', 'subscription-expired', 'A subscription expired.', SUBSCRIPTION),
  event(
    'payments',
    'subscription',
    'subscription-paused',
    'The provider paused a subscription, or the collection of its payments.',
    `${SUBSCRIPTION}, pause`,
  ),
  event(
    'payments',
    'subscription',
    'subscription-resumed',
    'The provider collects payments of an active subscription again.',
    SUBSCRIPTION,
  ),
  event(
    'payments',
    'subscription',
    'subscription-conflict',
    'A subscription is paid while its customer has another one. An admin has to cancel one of them.',
    `${SUBSCRIPTION}, existingSubscriptionId, externalSubscriptionId`,
  ),
  event(
    'payments',
    'subscription',
    'refund-offered',
    'A payment should be given back: it arrived after the end, or for a second checkout of the same subscription.',
    `${SUBSCRIPTION}, externalInvoiceId, amount, currency, providerKind, why`,
  ),
  event('payments', 'subscription', 'checkout-failed', 'A checkout could not be started.', SUBSCRIPTION),
  event(
    'payments',
    'subscription',
    'coupon-redeemed',
    'A coupon was redeemed.',
    `${SUBSCRIPTION}, couponId, couponCode`,
  ),
  event(
    'payments',
    'subscription',
    'coupon-lost',
    'A coupon ran out before its payment arrived.',
    `${SUBSCRIPTION}, couponId, couponCode`,
  ),
  event(
    'payments',
    'subscription',
    'provider-drift',
    'The provider knew something else than we did.',
    `${SUBSCRIPTION}, providerKind, mended`,
  ),
  event(
    'payments',
    'subscription',
    'webhook-failed',
    'Somebody paid twice, or for something that has ended.',
    SUBSCRIPTION,
  ),
  event('payments', 'webhook', 'webhook-failed', 'An event of a provider could not be applied.', 'providerKind'),
  event('payments', 'invoice', 'invoice-paid', 'An invoice was paid.', INVOICE),
  event('payments', 'invoice', 'invoice-open', 'An invoice is open.', INVOICE),
  event('payments', 'invoice', 'invoice-void', 'An invoice was voided.', INVOICE),
  event('limits', 'quota', 'quota-warning', '80 % of a quota of the tenant are used.', QUOTA),
  event('limits', 'quota', 'quota-reached', 'A quota of the tenant is used up.', QUOTA),
  event('storage', 'database', 'database-damaged', 'The weekly check found damage.', 'flaws'),
]
