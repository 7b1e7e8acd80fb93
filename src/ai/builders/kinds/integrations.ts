import { t } from 'elysia'
import { may } from '../../../accounts/permissions'
import { Problem } from '../../../core/problem'
import * as all from '../../../plugins/integrations/integrations'
import { Integration, NewIntegration } from '../../../plugins/integrations/shapes'
import { type DraftKind, flawsOf } from '../drafts'

const { trigger, target } = Integration.properties

/** What is done when something comes, happens or is due. */
export const integrations: DraftKind<typeof NewIntegration> = {
  ...{ one: 'integration', shape: NewIntegration, area: 'integrations' },
  told: t.Object({ ...NewIntegration.properties, trigger, target }),
  flaws: async (ctx, drafts) =>
    (await Promise.all(drafts.map((draft, n) => flawsOf(n, () => all.refuseUnfit(ctx, draft))))).flat(),
  refuseUnlessMayMake({ actor }) {
    if (!may(actor, 'privileged'))
      throw new Problem(403, 'FORBIDDEN', 'Your roles do not allow you to make integrations.')
  },
  make: all.create,
}
