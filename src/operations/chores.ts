import { removeExpired } from '../accounts/sessions'
import { settleHosts } from '../content/websites'
import * as events from '../events/records'
import type { Chore } from '../jobs/housekeeping'
import * as queue from '../jobs/queue'

/** What is removed from each tenant, and put right, now and then. */
export const chores: Chore[] = [removeExpired, events.removeOld, queue.removeOld, settleHosts]
