import type { Migrations } from '../src/storage/port'
import accountsPg from './postgres/0001_accounts.sql' with { type: 'text' }
import dataPg from './postgres/0002_data.sql' with { type: 'text' }
import jobsPg from './postgres/0003_jobs.sql' with { type: 'text' }
import searchPg from './postgres/0004_search.sql' with { type: 'text' }
import idempotencyPg from './postgres/0005_idempotency.sql' with { type: 'text' }
import componentsPg from './postgres/0006_components.sql' with { type: 'text' }
import alterationsPg from './postgres/0007_alterations.sql' with { type: 'text' }
import changesPg from './postgres/0008_changes.sql' with { type: 'text' }
import workspacesPg from './postgres/0009_workspaces.sql' with { type: 'text' }
import blocksPg from './postgres/0010_blocks.sql' with { type: 'text' }
import eventsPg from './postgres/0011_events.sql' with { type: 'text' }
import latestPg from './postgres/0012_latest.sql' with { type: 'text' }
import followingPg from './postgres/0013_following.sql' with { type: 'text' }
import usersPg from './postgres/0014_users.sql' with { type: 'text' }
import mailPg from './postgres/0015_mail.sql' with { type: 'text' }
import passkeysPg from './postgres/0017_passkeys.sql' with { type: 'text' }
import pluginsPg from './postgres/0019_plugins.sql' with { type: 'text' }
import lambdasPg from './postgres/0020_lambdas.sql' with { type: 'text' }
import integrationsPg from './postgres/0021_integrations.sql' with { type: 'text' }
import paymentsPg from './postgres/0022_payments.sql' with { type: 'text' }
import aiPg from './postgres/0023_ai.sql' with { type: 'text' }
import knowledgePg from './postgres/0024_knowledge.sql' with { type: 'text' }
import parkedEventsPg from './postgres/0025_parked_events.sql' with { type: 'text' }
import driftPg from './postgres/0026_drift.sql' with { type: 'text' }
import spentPg from './postgres/0027_spent.sql' with { type: 'text' }
import embeddingsPg from './postgres/0028_embeddings.sql' with { type: 'text' }
import checkoutsPg from './postgres/0029_checkouts.sql' with { type: 'text' }
import emailChangesPg from './postgres/0030_email_changes.sql' with { type: 'text' }
import grantedRolesPg from './postgres/0033_granted_roles.sql' with { type: 'text' }
import createdPathsPg from './postgres/0034_created_paths.sql' with { type: 'text' }
import jobLanesPg from './postgres/0040_job_lanes.sql' with { type: 'text' }
import wordsOfFieldsPg from './postgres/0041_words_of_fields.sql' with { type: 'text' }
import quotasPg from './postgres/0043_quotas.sql' with { type: 'text' }
import tracesPg from './postgres/0044_traces.sql' with { type: 'text' }
import fieldIndexesPg from './postgres/0045_field_indexes.sql' with { type: 'text' }
import entityCompactionPg from './postgres/0046_entity_compaction.sql' with { type: 'text' }
import idsStoredOncePg from './postgres/0048_ids_stored_once.sql' with { type: 'text' }
import changeTrackingPg from './postgres/0049_change_tracking.sql' with { type: 'text' }
import filesPg from './postgres/0050_files.sql' with { type: 'text' }
import emailSignInsPg from './postgres/0051_email_signins.sql' with { type: 'text' }
import fileFieldsPg from './postgres/0052_file_fields.sql' with { type: 'text' }
import picturesPg from './postgres/0053_pictures.sql' with { type: 'text' }
import sitesPg from './postgres/0054_sites.sql' with { type: 'text' }
import entityVersionsPg from './postgres/0055_entity_versions.sql' with { type: 'text' }
import versionChainsPg from './postgres/0059_version_chains.sql' with { type: 'text' }
import blueprintCodesPg from './postgres/0060_blueprint_codes.sql' with { type: 'text' }
import originalMessagesPg from './postgres/0061_original_messages.sql' with { type: 'text' }
import subscriptionPausesPg from './postgres/0062_subscription_pauses.sql' with { type: 'text' }
import marksOfWordsPg from './postgres/0063_marks_of_words.sql' with { type: 'text' }
import mailedCodesPg from './postgres/0064_mailed_codes.sql' with { type: 'text' }
import indexKeysPg from './postgres/0065_versions_of_index_keys.sql' with { type: 'text' }
import offeredRefundsPg from './postgres/0066_offered_refunds.sql' with { type: 'text' }
import compoundIndexesPg from './postgres/0067_compound_indexes.sql' with { type: 'text' }
import searchedWordsPg from './postgres/0068_searched_words.sql' with { type: 'text' }
import tenantsPg from './postgres/registry/0001_tenants.sql' with { type: 'text' }
import movesPg from './postgres/registry/0002_moves.sql' with { type: 'text' }
import hostsPg from './postgres/registry/0003_hosts.sql' with { type: 'text' }
import hostProofsPg from './postgres/registry/0004_host_proofs.sql' with { type: 'text' }
import madePg from './postgres/registry/0006_made.sql' with { type: 'text' }
import operatorPg from './postgres/registry/0007_operator.sql' with { type: 'text' }
import operatorTasksPg from './postgres/registry/0008_operator_tasks.sql' with { type: 'text' }
import limitsPg from './postgres/registry/0009_limits.sql' with { type: 'text' }
import backupsPg from './postgres/registry/0012_backups.sql' with { type: 'text' }
import schemaVersionsPg from './postgres/registry/0013_schema_versions.sql' with { type: 'text' }
import operatorTokensPg from './postgres/registry/0014_operator_tokens.sql' with { type: 'text' }
import tenantQuotasPg from './postgres/registry/0015_quotas.sql' with { type: 'text' }
import certificatesPg from './postgres/registry/0016_certificates.sql' with { type: 'text' }
import outgoingPg from './postgres/registry/0057_outgoing.sql' with { type: 'text' }
import restoresPg from './postgres/registry/0061_restores.sql' with { type: 'text' }
import earlierUidsPg from './postgres/registry/0064_earlier_uids.sql' with { type: 'text' }
import accounts from './sqlite/0001_accounts.sql' with { type: 'text' }
import data from './sqlite/0002_data.sql' with { type: 'text' }
import jobs from './sqlite/0003_jobs.sql' with { type: 'text' }
import search from './sqlite/0004_search.sql' with { type: 'text' }
import idempotency from './sqlite/0005_idempotency.sql' with { type: 'text' }
import components from './sqlite/0006_components.sql' with { type: 'text' }
import alterations from './sqlite/0007_alterations.sql' with { type: 'text' }
import changes from './sqlite/0008_changes.sql' with { type: 'text' }
import workspaces from './sqlite/0009_workspaces.sql' with { type: 'text' }
import blocks from './sqlite/0010_blocks.sql' with { type: 'text' }
import events from './sqlite/0011_events.sql' with { type: 'text' }
import latest from './sqlite/0012_latest.sql' with { type: 'text' }
import following from './sqlite/0013_following.sql' with { type: 'text' }
import users from './sqlite/0014_users.sql' with { type: 'text' }
import mail from './sqlite/0015_mail.sql' with { type: 'text' }
import passkeys from './sqlite/0017_passkeys.sql' with { type: 'text' }
import plugins from './sqlite/0019_plugins.sql' with { type: 'text' }
import lambdas from './sqlite/0020_lambdas.sql' with { type: 'text' }
import integrations from './sqlite/0021_integrations.sql' with { type: 'text' }
import payments from './sqlite/0022_payments.sql' with { type: 'text' }
import ai from './sqlite/0023_ai.sql' with { type: 'text' }
import knowledge from './sqlite/0024_knowledge.sql' with { type: 'text' }
import parkedEvents from './sqlite/0025_parked_events.sql' with { type: 'text' }
import drift from './sqlite/0026_drift.sql' with { type: 'text' }
import spent from './sqlite/0027_spent.sql' with { type: 'text' }
import embeddings from './sqlite/0028_embeddings.sql' with { type: 'text' }
import checkouts from './sqlite/0029_checkouts.sql' with { type: 'text' }
import emailChanges from './sqlite/0030_email_changes.sql' with { type: 'text' }
import grantedRoles from './sqlite/0033_granted_roles.sql' with { type: 'text' }
import createdPaths from './sqlite/0034_created_paths.sql' with { type: 'text' }
import jobLanes from './sqlite/0040_job_lanes.sql' with { type: 'text' }
import wordsOfFields from './sqlite/0041_words_of_fields.sql' with { type: 'text' }
import quotas from './sqlite/0043_quotas.sql' with { type: 'text' }
import traces from './sqlite/0044_traces.sql' with { type: 'text' }
import fieldIndexes from './sqlite/0045_field_indexes.sql' with { type: 'text' }
import entityCompaction from './sqlite/0046_entity_compaction.sql' with { type: 'text' }
import withoutRowids from './sqlite/0047_without_rowids.sql' with { type: 'text' }
import idsStoredOnce from './sqlite/0048_ids_stored_once.sql' with { type: 'text' }
import idsStoredOnceRewritten from './sqlite/0048_ids_stored_once_rewritten.sql' with { type: 'text' }
import changeTracking from './sqlite/0049_change_tracking.sql' with { type: 'text' }
import files from './sqlite/0050_files.sql' with { type: 'text' }
import emailSignIns from './sqlite/0051_email_signins.sql' with { type: 'text' }
import fileFields from './sqlite/0052_file_fields.sql' with { type: 'text' }
import pictures from './sqlite/0053_pictures.sql' with { type: 'text' }
import sites from './sqlite/0054_sites.sql' with { type: 'text' }
import entityVersions from './sqlite/0055_entity_versions.sql' with { type: 'text' }
import tokensWithoutRowids from './sqlite/0058_tokens_without_rowids.sql' with { type: 'text' }
import versionChains from './sqlite/0059_version_chains.sql' with { type: 'text' }
import blueprintCodes from './sqlite/0060_blueprint_codes.sql' with { type: 'text' }
import originalMessages from './sqlite/0061_original_messages.sql' with { type: 'text' }
import subscriptionPauses from './sqlite/0062_subscription_pauses.sql' with { type: 'text' }
import marksOfWords from './sqlite/0063_marks_of_words.sql' with { type: 'text' }
import mailedCodes from './sqlite/0064_mailed_codes.sql' with { type: 'text' }
import indexKeys from './sqlite/0065_versions_of_index_keys.sql' with { type: 'text' }
import offeredRefunds from './sqlite/0066_offered_refunds.sql' with { type: 'text' }
import compoundIndexes from './sqlite/0067_compound_indexes.sql' with { type: 'text' }
import mergesOfWords from './sqlite/0069_merges_of_words.sql' with { type: 'text' }
import tenants from './sqlite/registry/0001_tenants.sql' with { type: 'text' }
import moves from './sqlite/registry/0002_moves.sql' with { type: 'text' }
import hosts from './sqlite/registry/0003_hosts.sql' with { type: 'text' }
import hostProofs from './sqlite/registry/0004_host_proofs.sql' with { type: 'text' }
import made from './sqlite/registry/0006_made.sql' with { type: 'text' }
import operator from './sqlite/registry/0007_operator.sql' with { type: 'text' }
import operatorTasks from './sqlite/registry/0008_operator_tasks.sql' with { type: 'text' }
import limits from './sqlite/registry/0009_limits.sql' with { type: 'text' }
import backups from './sqlite/registry/0012_backups.sql' with { type: 'text' }
import schemaVersions from './sqlite/registry/0013_schema_versions.sql' with { type: 'text' }
import operatorTokens from './sqlite/registry/0014_operator_tokens.sql' with { type: 'text' }
import tenantQuotas from './sqlite/registry/0015_quotas.sql' with { type: 'text' }
import certificates from './sqlite/registry/0016_certificates.sql' with { type: 'text' }
import outgoing from './sqlite/registry/0057_outgoing.sql' with { type: 'text' }
import restores from './sqlite/registry/0061_restores.sql' with { type: 'text' }
import earlierUids from './sqlite/registry/0064_earlier_uids.sql' with { type: 'text' }
import schema from './sqlite/schema.sql' with { type: 'text' }

/** Returns the generated schema, which ends with its version. */
const readSchema = (sql: string) => ({ sql, version: Number(/user_version = (\d+)/.exec(sql)![1]) })

/** The schema of a tenant's database, in order, forever. */
export const tenantMigrations: Migrations = {
  sqlite: [
    accounts,
    data,
    jobs,
    search,
    idempotency,
    components,
    alterations,
    changes,
    workspaces,
    blocks,
    events,
    latest,
    following,
    users,
    mail,
    passkeys,
    plugins,
    lambdas,
    integrations,
    payments,
    ai,
    knowledge,
    parkedEvents,
    drift,
    spent,
    embeddings,
    checkouts,
    emailChanges,
    grantedRoles,
    createdPaths,
    jobLanes,
    wordsOfFields,
    quotas,
    traces,
    fieldIndexes,
    entityCompaction,
    withoutRowids,
    idsStoredOnce,
    changeTracking,
    files,
    emailSignIns,
    fileFields,
    pictures,
    sites,
    entityVersions,
    tokensWithoutRowids,
    versionChains,
    blueprintCodes,
    originalMessages,
    subscriptionPauses,
    marksOfWords,
    mailedCodes,
    indexKeys,
    offeredRefunds,
    compoundIndexes,
    mergesOfWords,
  ],
  postgres: [
    accountsPg,
    dataPg,
    jobsPg,
    searchPg,
    idempotencyPg,
    componentsPg,
    alterationsPg,
    changesPg,
    workspacesPg,
    blocksPg,
    eventsPg,
    latestPg,
    followingPg,
    usersPg,
    mailPg,
    passkeysPg,
    pluginsPg,
    lambdasPg,
    integrationsPg,
    paymentsPg,
    aiPg,
    knowledgePg,
    parkedEventsPg,
    driftPg,
    spentPg,
    embeddingsPg,
    checkoutsPg,
    emailChangesPg,
    grantedRolesPg,
    createdPathsPg,
    jobLanesPg,
    wordsOfFieldsPg,
    quotasPg,
    tracesPg,
    fieldIndexesPg,
    entityCompactionPg,
    idsStoredOncePg,
    changeTrackingPg,
    filesPg,
    emailSignInsPg,
    fileFieldsPg,
    picturesPg,
    sitesPg,
    entityVersionsPg,
    versionChainsPg,
    blueprintCodesPg,
    originalMessagesPg,
    subscriptionPausesPg,
    marksOfWordsPg,
    mailedCodesPg,
    indexKeysPg,
    offeredRefundsPg,
    compoundIndexesPg,
    searchedWordsPg,
  ],
  schema: readSchema(schema),
  rewriting: [48],
  withoutAlterColumn: new Map([[idsStoredOnce, idsStoredOnceRewritten]]),
}

/** The schema of the registry of tenants. */
export const registryMigrations: Migrations = {
  sqlite: [
    tenants,
    moves,
    hosts,
    hostProofs,
    made,
    operator,
    operatorTasks,
    limits,
    backups,
    schemaVersions,
    operatorTokens,
    tenantQuotas,
    certificates,
    outgoing,
    restores,
    earlierUids,
  ],
  postgres: [
    tenantsPg,
    movesPg,
    hostsPg,
    hostProofsPg,
    madePg,
    operatorPg,
    operatorTasksPg,
    limitsPg,
    backupsPg,
    schemaVersionsPg,
    operatorTokensPg,
    tenantQuotasPg,
    certificatesPg,
    outgoingPg,
    restoresPg,
    earlierUidsPg,
  ],
}
