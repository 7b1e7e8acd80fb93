import { t } from 'elysia'
import { defineSettings, nameList } from '../../platform/settings/tenant-settings'

/** Which users may create workspaces, and which labels and roles workspaces may have. */
export const workspaceSettings = defineSettings(
  'workspace-configuration',
  t.Object({
    isActive: t.Boolean({ default: true }),
    creationPrivilegedRoles: nameList('roles that may create workspaces; empty: every user'),
    labels: nameList('labels that a workspace may have; empty: any'),
    allowNonLabeledWorkspaces: t.Boolean({ default: true }),
    restrictedLabels: nameList('labels that only admins of the tenant can assign to workspaces'),
    restrictedRoles: nameList('workspace roles that only admins of the tenant can assign'),
    restricted: t.Union([t.Literal('listed'), t.Literal('named')], {
      default: 'listed',
      description: 'named: also restricts every label and role that a rule, limitation or integration refers to',
    }),
  }),
)
