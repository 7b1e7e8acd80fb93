import { blog } from './blog'
import { crm } from './crm'
import { helpDesk } from './help-desk'
import { shop } from './shop'
import type { Template } from './template'

/** What the first screen offers to begin with. */
export const templates: readonly Template[] = [shop, helpDesk, crm, blog]
