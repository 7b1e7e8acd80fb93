import * as emailChanges from '../accounts/mail/email-changes'
import * as mails from '../accounts/mail/mails'
import * as oneTime from '../accounts/one-time-tokens'
import * as challenges from '../accounts/passkeys/challenges'
import { removeExpired } from '../accounts/sessions'
import { removeExpiredStores } from '../ai/knowledge/store-removal'
import * as turns from '../ai/turn/turn-store'
import * as spending from '../ai/usage/usage-record'
import { reconcileHosts } from '../content/website-hosts'
import * as changes from '../entities/changes/change-log'
import { undoAllAbandonedImports } from '../entities/transfer/undo-journal'
import * as events from '../events/events'
import type { HousekeepingTask } from '../jobs/housekeeping'
import * as queue from '../jobs/queue'
import * as lambdaRuns from '../lambdas/runs'
import * as inbox from '../payments/webhooks/provider-events'
import * as deliveries from '../plugins/deliveries'
import { checkProvenHosts } from '../tenancy/host-checks'
import { checkIntegrityWeekly } from './integrity'

/** What is removed from each tenant, undone, put right or checked in it, now and then. */
export const housekeepingTasks: HousekeepingTask[] = [
  removeExpired,
  oneTime.removeExpired,
  challenges.removeExpired,
  emailChanges.removeExpired,
  mails.removeOld,
  changes.removeOld,
  events.removeOld,
  queue.removeOld,
  deliveries.removeOld,
  lambdaRuns.removeOld,
  removeExpiredStores,
  turns.removeOld,
  spending.removeOld,
  inbox.removeOld,
  undoAllAbandonedImports,
  reconcileHosts,
  ({ tenant }) => checkProvenHosts(tenant),
  checkIntegrityWeekly,
]
