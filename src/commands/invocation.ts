import { IS_COMPILED } from '../core/worker-url'

/** How a person starts this program here, for hints that can be pasted: the binary by its name, a checkout by npx. */
export const invocation = IS_COMPILED ? 'atoll' : 'npx atoll'
