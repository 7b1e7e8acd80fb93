import { useQuery } from '@tanstack/react-query'
import { installationQuery } from '../api/queries'
import { getNamedTenant } from '../api/session'
import classes from './frame.module.css'

/** Says that the tenant is a copy that does nothing outside, what is held back, and who ends that. */
export function HeldCopyBanner() {
  const { data } = useQuery({ ...installationQuery, staleTime: 60_000 })
  if (!data?.outgoingHeld) return null
  return (
    <section className={classes.held} aria-label="Copy of a tenant">
      <strong>This tenant is a copy that does nothing outside.</strong> Webhooks and integrations wait, mails stay in
      the outbox, and payment providers are not called. The operator of this server lets it act outside, on the page of
      the operator or with <code>atoll tenant resume {getNamedTenant() ?? '<id>'} --outgoing</code>.
    </section>
  )
}
