import { copyDetachments } from '../backups/copy-detachments'
import { credentialTables } from '../backups/credential-tables'
import { defineArea } from '../jobs/area'
import { useMeasures } from '../limits/quota-use'
import { settingsShapes, toShapes } from '../platform/settings/tenant-settings'
import { authSettings } from './auth-settings'
import * as emailSignIns from './email-signin/request'
import { emailSignInRoutes } from './email-signin/routes'
import { encryptedRoutes } from './encrypted-data/routes'
import { linkRoutes } from './links/routes'
import * as emailChanges from './mail/email-changes'
import * as mails from './mail/mails'
import { passwordResetJob } from './mail/password-reset'
import { mailRoutes } from './mail/routes'
import { sendMailJob } from './mail/send-mail-job'
import { workspaceSettings } from './memberships/workspace-settings'
import * as oneTimeTokens from './one-time-tokens'
import * as challenges from './passkeys/challenges'
import { passkeyRoutes } from './passkeys/routes'
import { accountRoutes } from './routes'
import * as sessions from './sessions'
import { socialRoutes } from './social/routes'
import { totpRoutes } from './totp/routes'
import { userRoutes } from './users/routes'
import { countUsers } from './users/users'

const CREDENTIAL_TABLES = [
  ...['sessions', 'session_keys', 'api_tokens', 'one_time_tokens'],
  ...['devices', 'email_changes', 'email_signins', 'passkey_challenges', 'invites', 'idempotency_keys'],
]

const MAIL_JOBS = {
  mail: sendMailJob,
  'forgotten-password': passwordResetJob,
  'email-signin': emailSignIns.emailSignInJob,
}
/** The origin sends what waits. A copy that is let act outside before the next attempt would send it, too. */
const COPY_DETACHMENTS = [
  `delete from jobs where kind in (${Object.keys(MAIL_JOBS)
    .map((kind) => `'${kind}'`)
    .join(', ')}) and state = 'waiting'`,
  "delete from mails where state = 'waiting'",
]

/** Users, their sign-in methods, sessions and tokens, and the mails about them. */
export const accounts = defineArea({
  name: 'accounts',
  routes: [
    ...accountRoutes,
    linkRoutes,
    emailSignInRoutes,
    mailRoutes,
    totpRoutes,
    ...passkeyRoutes,
    ...socialRoutes,
    ...userRoutes,
    encryptedRoutes,
  ],
  jobs: MAIL_JOBS,
  housekeeping: {
    'expired sessions': sessions.removeExpired,
    'expired one-time tokens': oneTimeTokens.removeExpired,
    'expired passkey challenges': challenges.removeExpired,
    'expired e-mail changes': emailChanges.removeExpired,
    'expired e-mail sign-ins': emailSignIns.removeExpired,
    'old mails': mails.removeOld,
  },
  provides: [
    settingsShapes.provide(toShapes(authSettings, workspaceSettings)),
    credentialTables.provide(CREDENTIAL_TABLES),
    copyDetachments.provide(COPY_DETACHMENTS),
    useMeasures.provide({ users: countUsers, mails: mails.countSentToday }),
  ],
})
