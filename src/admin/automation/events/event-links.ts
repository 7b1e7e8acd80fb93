import type { Event } from '../../api/schema'

export type EventLink = { label: string; path: string; search?: Record<string, string> }

const toPath = (folder: string, id: unknown) => `${folder}/${encodeURIComponent(String(id))}`

/** The things that the metadata of events name, and where each is shown. */
const METADATA_LINKS: [key: string, label: string, folder: string, tab?: string][] = [
  ['lambda', 'Lambda', '/automation/lambdas', 'logs'],
  ['integration', 'Integration', '/automation/integrations', 'runs'],
  ['plugin', 'Plugin', '/automation/plugins'],
  ['event', 'Event', '/automation/events'],
  ['subscriptionId', 'Subscription', '/payments/subscriptions'],
  ['invoiceId', 'Invoice', '/payments/invoices'],
  ['planId', 'Plan', '/payments/plans'],
  ['couponId', 'Coupon', '/payments/coupons'],
]

/** Returns what an event is about, with where it is shown. */
export function listEventLinks({ source, kind, metadata, workspace }: Event): EventLink[] {
  const links: EventLink[] = []
  if (source === 'blueprints' && typeof metadata.identifier === 'string')
    links.push({
      label: `Entity ${metadata.identifier}`,
      path: toPath(`/data/${encodeURIComponent(kind)}`, metadata.identifier),
    })
  else if (source === 'blueprints') links.push({ label: `Blueprint ${kind}`, path: toPath('/data', kind) })
  if (source === 'accounts' && typeof metadata.user === 'string')
    links.push({ label: String(metadata.username ?? 'User'), path: toPath('/people/users', metadata.user) })
  // Users can write any metadata into events of their own.
  if (['plugins', 'payments', 'ai'].includes(source))
    for (const [key, label, folder, tab] of METADATA_LINKS)
      if (typeof metadata[key] === 'string')
        links.push({ label, path: toPath(folder, metadata[key]), ...(tab && { search: { tab } }) })
  if (workspace) links.push({ label: 'Workspace', path: toPath('/people/workspaces', workspace) })
  return links
}
