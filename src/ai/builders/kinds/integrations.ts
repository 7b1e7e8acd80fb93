import { t } from 'elysia'
import { hasPermission } from '../../../accounts/permissions'
import { Problem } from '../../../core/problem'
import * as integrationStore from '../../../integrations/integrations'
import { Integration, NewIntegration } from '../../../integrations/shapes'
import { collectErrors, defineDraftKind } from '../draft-kind'

const { trigger, target } = Integration.properties

/** Drafts of integrations. */
export const integrations = defineDraftKind({
  ...{ singular: 'integration', plural: 'integrations', shape: NewIntegration, area: 'integrations' },
  modelShape: t.Object({ ...NewIntegration.properties, trigger, target }),
  validate: async (ctx, drafts) =>
    (
      await Promise.all(
        drafts.map((draft, n) => collectErrors(n, () => integrationStore.assertValidIntegration(ctx, draft))),
      )
    ).flat(),
  assertMayCreate({ actor }) {
    if (!hasPermission(actor, 'privileged'))
      throw new Problem(403, 'FORBIDDEN', 'Your roles do not allow you to create integrations.')
  },
  create: integrationStore.create,
})
