import * as mails from '../accounts/mail/mails'
import * as oneTime from '../accounts/one-time'
import { removeExpired } from '../accounts/sessions'
import * as events from '../events/records'
import type { Chore } from '../jobs/housekeeping'
import * as queue from '../jobs/queue'

/** What is removed from each tenant now and then. */
export const chores: Chore[] = [
  removeExpired,
  oneTime.removeExpired,
  mails.removeOld,
  events.removeOld,
  queue.removeOld,
]
