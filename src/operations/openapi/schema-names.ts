import * as emailSignIn from '../../accounts/email-signin/shapes'
import * as links from '../../accounts/links/shapes'
import * as mail from '../../accounts/mail/shapes'
import * as passkeys from '../../accounts/passkeys/shapes'
import * as accounts from '../../accounts/shapes'
import * as social from '../../accounts/social/shapes'
import * as totp from '../../accounts/totp/shapes'
import * as users from '../../accounts/users/shapes'
import * as builders from '../../ai/builders/shapes'
import * as knowledge from '../../ai/knowledge/shapes'
import * as openai from '../../ai/openai/shapes'
import * as ai from '../../ai/shapes'
import * as usage from '../../ai/usage/shapes'
import * as backups from '../../backups/shapes'
import * as blueprints from '../../blueprints/shapes'
import * as connections from '../../connections/shapes'
import * as content from '../../content/shapes'
import { ProblemShape } from '../../core/problem'
import { SuccessShape } from '../../core/shapes'
import * as definitions from '../../definitions/shapes'
import * as charts from '../../entities/charts/shapes'
import * as history from '../../entities/history/shapes'
import * as entities from '../../entities/shapes'
import * as events from '../../events/shapes'
import * as files from '../../files/shapes'
import * as integrations from '../../integrations/shapes'
import * as lambdas from '../../lambdas/shapes'
import * as limits from '../../limits/shapes'
import * as paymentsConfiguration from '../../payments/configuration-shapes'
import * as payments from '../../payments/shapes'
import * as subscriptions from '../../payments/subscriptions/shapes'
import * as inbox from '../../payments/webhooks/shapes'
import * as plugins from '../../plugins/shapes'
import * as sites from '../../sites/shapes'
import * as tls from '../../tls/shapes'
import * as workspaces from '../../workspaces/shapes'
import * as operations from '../shapes'

/** The modules of shapes. Each exported shape is a schema of the document, with the name of its export. */
const SHAPE_MODULES = [
  openai,
  ...[
    accounts,
    emailSignIn,
    links,
    mail,
    passkeys,
    social,
    totp,
    users,
    workspaces,
    blueprints,
    entities,
    history,
    charts,
    content,
    definitions,
    events,
    files,
  ],
  ...[
    payments,
    paymentsConfiguration,
    subscriptions,
    inbox,
    plugins,
    connections,
    integrations,
    lambdas,
    sites,
    ai,
    usage,
    knowledge,
    builders,
    limits,
    backups,
    operations,
    tls,
  ],
]

/** The schema names of exports whose own name is clear only within their area. */
const SCHEMA_NAMES = new Map<unknown, string>([
  [accounts.ActiveWorkspace, 'ActiveWorkspace'],
  [accounts.RefreshRequest, 'RefreshRequest'],
  [accounts.RefreshedTokens, 'RefreshedTokens'],
  [accounts.RefreshedCookie, 'RefreshedCookie'],
  [mail.EmailVerification, 'EmailVerification'],
  [mail.RevertToken, 'RevertToken'],
  [passkeys.PasskeyRegistrationOptions, 'PasskeyRegistrationOptions'],
  [passkeys.PasskeySignInOptions, 'PasskeySignInOptions'],
  [passkeys.PasskeySignInStart, 'PasskeySignInStart'],
  [social.Redirect, 'Redirect'],
  [totp.TotpCode, 'TotpCode'],
  [users.UserSummary, 'UserSummary'],
  [workspaces.WorkspaceSummary, 'WorkspaceSummary'],
  [workspaces.WorkspaceDetails, 'WorkspaceDetails'],
  [workspaces.WorkspaceRemoved, 'WorkspaceRemoved'],
  [blueprints.History, 'BlueprintHistory'],
  [blueprints.FieldIndexShape, 'FieldIndex'],
  [blueprints.OperationExplanation, 'OperationExplanation'],
  [blueprints.PermissionExplanation, 'PermissionExplanation'],
  [blueprints.BlueprintChangeProblem, 'BlueprintChangeProblem'],
  [blueprints.BlueprintDryRun, 'BlueprintDryRun'],
  [charts.Sum, 'EntitySum'],
  [content.ComponentBulk, 'ComponentBulk'],
  [content.ComponentBulkResult, 'ComponentBulkResult'],
  [inbox.ProviderEventReceipt, 'ProviderEventReceipt'],
  [inbox.ProviderEventDetails, 'ProviderEventDetails'],
  [plugins.Delivery, 'PluginDelivery'],
  [plugins.MadePlugin, 'CreatedPlugin'],
  [plugins.NewSecret, 'PluginSecret'],
  [plugins.NewToken, 'PluginToken'],
  [plugins.Rotation, 'PluginSecretRotation'],
  [connections.Connection, 'IntegrationSource'],
  [connections.ConnectionChange, 'IntegrationSourceChange'],
  [connections.ConnectionDraft, 'IntegrationSourceDraft'],
  [connections.NewConnection, 'NewIntegrationSource'],
  [connections.Status, 'IntegrationSourceStatus'],
  [integrations.Run, 'IntegrationRun'],
  [lambdas.Execution, 'LambdaExecution'],
  [lambdas.RunSummary, 'LambdaRunSummary'],
  [lambdas.Input, 'LambdaInput'],
  [lambdas.Rollback, 'LambdaRollback'],
  [lambdas.Version, 'LambdaVersion'],
  [ai.AgentChatRequest, 'AgentChatRequest'],
  [ai.CompletionRequest, 'CompletionRequest'],
  [openai.Model, 'AiModel'],
  [openai.ModelList, 'AiModelList'],
  [ai.ThreadSummary, 'ThreadSummary'],
  [usage.AiUsage, 'AiUsage'],
  [usage.AiUsageTotal, 'AiUsageTotal'],
  [knowledge.VectorStoreCleared, 'VectorStoreCleared'],
  [knowledge.VectorStoreClear, 'VectorStoreClear'],
  [knowledge.NewVectorStore, 'NewVectorStore'],
  [knowledge.VectorStore, 'VectorStore'],
  [knowledge.VectorStoreCreated, 'VectorStoreCreated'],
  [knowledge.VectorStoreUpload, 'VectorStoreUpload'],
  [knowledge.VectorStoreUploaded, 'VectorStoreUploaded'],
  [builders.DraftedBlueprints, 'DraftedBlueprints'],
  [builders.DraftRequest, 'DraftRequest'],
  [builders.BlueprintDraftRequest, 'BlueprintDraftRequest'],
])

/**
 * All named shapes with their names. The first of several equal shapes counts, so shapes of changes come after the
 * whole shapes. A test ensures that no name is used twice.
 */
export const namedShapes: [name: string, shape: object][] = [
  ['Problem', ProblemShape],
  ['Success', SuccessShape],
  ...SHAPE_MODULES.flatMap((area): [string, unknown][] => Object.entries(area))
    .flatMap(([name, shape]): [string, object][] =>
      isNameable(shape) ? [[SCHEMA_NAMES.get(shape) ?? name, shape]] : [],
    )
    .sort(([one], [other]) => Number(one.endsWith('Change')) - Number(other.endsWith('Change'))),
]

/** Tells whether a shape gets a schema of its own. Texts and numbers are described in place. */
export function isNameable(shape: unknown): shape is object {
  if (shape === null || typeof shape !== 'object') return false
  return (
    'properties' in shape ||
    'enum' in shape ||
    'anyOf' in shape ||
    'patternProperties' in shape ||
    'additionalProperties' in shape
  )
}
