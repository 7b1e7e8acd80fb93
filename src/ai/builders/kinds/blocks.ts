import * as all from '../../../content/blocks'
import { NewBlock } from '../../../content/shapes'
import { type DraftKind, flawsOf } from '../drafts'

/** Pieces of content, of which pages consist. */
export const blocks: DraftKind<typeof NewBlock> = {
  ...{ one: 'block', shape: NewBlock, area: 'blocks' },
  flaws: async (ctx, drafts) =>
    (await Promise.all(drafts.map((draft, n) => flawsOf(n, () => all.refuseUnfit(ctx, draft))))).flat(),
  refuseUnlessMayMake: all.requireEditor,
  make: (ctx, draft, answer) => all.create(ctx, draft, {}, answer),
}
