import { api, fetchData } from '../api/client'
import type { Plan } from '../api/schema'
import { confirmAction } from '../ui/confirmation'
import { showNotice } from '../ui/notices'
import { fetchPayerName } from './payer-queries'
import { refreshPayments } from './payment-queries'

const NAMES_SHOWN = 3

/** Returns a sentence that says who is subscribed to a plan. */
async function describeSubscribers(planId: string): Promise<string> {
  const { data = [], response } = await api.GET('/api/subscriptions', {
    params: { query: { planId, status: 'active,trialing,past_due', limit: NAMES_SHOWN, $count: true } },
  })
  const count = Number(response.headers.get('x-total-count') ?? data.length)
  if (!count) return 'It has no subscribers.'
  const names = await Promise.all(data.map(fetchPayerName))
  const otherCount = count - names.length
  const subject =
    otherCount > 0
      ? `${names.join(', ')} and ${otherCount.toLocaleString()} more are`
      : `${names.join(', ')} ${count === 1 ? 'is' : 'are'}`
  return `${subject} subscribed to it. They keep it and go on paying.`
}

/** Takes a plan off sale after a confirmation. Subscriptions to it go on. */
export async function archivePlan({ _id: id, name }: Plan) {
  const isConfirmed = await confirmAction({
    title: `Archive the plan “${name}”?`,
    text: `New customers can no longer subscribe. ${await describeSubscribers(id)}`,
    action: 'Archive plan',
  })
  if (!isConfirmed) return
  await fetchData(api.DELETE('/api/plans/{id}', { params: { path: { id } } }))
  await refreshPayments()
  showNotice(`“${name}” is archived.`)
}
