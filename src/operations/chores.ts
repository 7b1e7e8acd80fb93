import * as mails from '../accounts/mail/mails'
import * as oneTime from '../accounts/one-time'
import * as challenges from '../accounts/passkeys/challenges'
import { removeExpired } from '../accounts/sessions'
import { removeEnded } from '../ai/knowledge/removal'
import * as turns from '../ai/turn/ending'
import * as spending from '../ai/usage/spending'
import { settleHosts } from '../content/websites'
import * as changes from '../entities/changes/log'
import { undoAllForsaken } from '../entities/transfer/undo'
import * as events from '../events/records'
import type { Chore } from '../jobs/housekeeping'
import * as queue from '../jobs/queue'
import * as inbox from '../payments/inbox/inbox'
import * as deliveries from '../plugins/deliveries'
import * as lambdaRuns from '../plugins/lambdas/runs'
import { checkProvenHosts } from '../tenancy/host-checks'
import { checkWeekly } from './integrity'

/** What is removed from each tenant, undone, put right or checked in it, now and then. */
export const chores: Chore[] = [
  removeExpired,
  oneTime.removeExpired,
  challenges.removeExpired,
  mails.removeOld,
  changes.removeOld,
  events.removeOld,
  queue.removeOld,
  deliveries.removeOld,
  lambdaRuns.removeOld,
  removeEnded,
  turns.removeOld,
  spending.removeOld,
  inbox.removeOld,
  undoAllForsaken,
  settleHosts,
  ({ tenant }) => checkProvenHosts(tenant),
  checkWeekly,
]
