/** Which callers a route admits, by the legend of the contract. */
export type ContractAuth = 'anon' | 'auth' | 'priv' | 'ws-admin' | 'editor' | 'provider' | 'integration'

/** Every route of the HTTP contract: method, path, auth. */
export const contractRoutes = `
GET    /api/blueprints/:key/entities                          auth
GET    /api/blueprints/:key/entities/:identifier              auth
POST   /api/blueprints/:key/entities                          auth
PUT    /api/blueprints/:key/entities/:identifier              auth
DELETE /api/blueprints/:key/entities/:identifier              auth
DELETE /api/blueprints/:key/entities/all                      auth
GET    /api/blueprints                                        auth
GET    /api/blueprints/:key                                   auth
GET    /api/blueprints/:blueprintKey/charts/:chartType        auth
GET    /api/blueprints/:blueprintKey/charts/pie               auth
GET    /api/blueprints/:blueprintKey/charts/count             auth
GET    /api/blueprints/:blueprintKey/charts/sum               auth
POST   /api/signin                                            anon
POST   /api/signup                                            anon
POST   /api/logout                                            auth
GET    /api/me                                                auth
POST   /api/me                                                auth
POST   /api/token/refresh                                     auth
POST   /api/cookie/refresh                                    auth
GET    /api/auth/google                                       anon
GET    /api/auth/google/callback                              anon
GET    /api/auth/github                                       anon
GET    /api/auth/github/callback                              anon
GET    /api/auth/linkedin                                     anon
GET    /api/auth/linkedin/callback                            anon
GET    /api/auth/facebook                                     anon
GET    /api/auth/facebook/callback                            anon
POST   /api/auth/callback                                     anon
GET    /api/roles                                             priv
GET    /api/workspaces                                        auth
POST   /api/workspaces                                        auth
GET    /api/workspaces/:workspaceId                           auth
PUT    /api/workspaces/:workspaceId                           auth
DELETE /api/workspaces/:workspaceId                           auth
POST   /api/workspaces/:workspaceId/activate                  auth
GET    /api/workspaces/:workspaceId/members                   auth
POST   /api/workspaces/:workspaceId/members                   ws-admin
PUT    /api/workspaces/:workspaceId/members/:userId           ws-admin
DELETE /api/workspaces/:workspaceId/members/:userId           ws-admin
GET    /api/workspaces/all                                    priv
GET    /api/workspaces/:workspaceId/encrypted                 priv
POST   /api/workspaces/:workspaceId/encrypted                 priv
GET    /api/invites                                           auth
POST   /api/invites                                           auth
POST   /api/ai/threads                                        auth
GET    /api/ai/threads                                        auth
GET    /api/ai/threads/:threadId                              auth
DELETE /api/ai/threads/:threadId                              auth
POST   /api/ai/:integrationId/chat-completion                 auth
POST   /api/ai/:integrationId/chat-completion/:threadId       auth
POST   /api/ai/sources/:sourceId/storage                      auth
POST   /api/ai/sources/:sourceId/storage/upload               auth
POST   /api/ai/sources/:sourceId/storage/clear                auth
POST   /api/ai/sources/:sourceId/chat-completion              auth
POST   /api/ai/sources/:sourceId/chat-completion/plain        auth
POST   /api/ai/sources/:sourceId/chat-completion/pages        auth
POST   /api/ai/sources/:sourceId/chat-completion/integrations auth
POST   /api/ai/sources/:sourceId/blueprints                   auth
GET    /api/ai/agents                                         auth
GET    /api/ai/agents/:id                                     auth
GET    /api/blocks                                            auth
GET    /api/blocks/:blockId                                   auth
POST   /api/blocks                                            auth
PUT    /api/blocks/:blockId                                   auth
DELETE /api/blocks/:blockId                                   auth
GET    /api/configurations/app-configuration                  anon
PUT    /api/configurations/app-configuration                  priv
GET    /api/webhooks/:integrationId                           integration
POST   /api/webhooks/:integrationId                           integration
PUT    /api/webhooks/:integrationId                           integration
DELETE /api/webhooks/:integrationId                           integration
GET    /api/events                                            editor
GET    /api/events/filter-options                             editor
GET    /api/events/count                                      editor
GET    /api/events/sum                                        editor
GET    /api/events/:eventId                                   editor
POST   /api/events                                            editor
GET    /api/plans/public                                      anon
GET    /api/plans/:planId                                     auth
POST   /api/plans                                             priv
PUT    /api/plans/:planId                                     priv
DELETE /api/plans/:planId                                     priv
GET    /api/subscriptions/me                                  auth
GET    /api/subscriptions                                     auth
GET    /api/subscriptions/workspaces                          priv
GET    /api/subscriptions/:id                                 auth
POST   /api/subscriptions                                     auth
PUT    /api/subscriptions/:id/dynamic-amount                  priv
PUT    /api/subscriptions/:id/coupon                          priv
PUT    /api/subscriptions/:id/cancel                          auth
POST   /api/checkout                                          auth
PUT    /api/checkout/:subscriptionId/cancel                   auth
GET    /api/payments/configuration                            priv
PUT    /api/payments/configuration                            priv
GET    /api/invoices                                          auth
GET    /api/invoices/:invoiceId                               auth
POST   /api/coupons/validate                                  anon
GET    /api/coupons                                           priv
GET    /api/coupons/:couponId                                 priv
POST   /api/coupons                                           priv
PUT    /api/coupons/:couponId                                 priv
DELETE /api/coupons/:couponId                                 priv
POST   /api/payments/webhooks/:providerKind                   provider
`
  .trim()
  .split('\n')
  .map((line) => {
    const [method = '', path = '', auth = ''] = line.split(/\s+/)
    return { method, path, auth: auth as ContractAuth }
  })

/** The prefixes of areas whose routes all exist. */
export const implementedPrefixes = [
  '/api/signin',
  '/api/signup',
  '/api/logout',
  '/api/me',
  '/api/token',
  '/api/cookie',
  '/api/auth',
  '/api/workspaces',
  '/api/invites',
  '/api/blueprints/:key/entities',
  '/api/blueprints/:blueprintKey/charts',
  '/api/ai/sources/:sourceId/storage',
  '/api/blocks',
  '/api/configurations',
  '/api/events',
  '/api/roles',
  '/api/webhooks',
  '/api/ai/threads',
  '/api/ai/:integrationId',
  '/api/ai/agents',
  '/api/ai/sources',
  '/api/plans',
  '/api/subscriptions',
  '/api/checkout',
  '/api/payments',
  '/api/invoices',
  '/api/coupons',
]
