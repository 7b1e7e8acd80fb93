import { IS_COMPILED } from '../core/worker-url'

/** The command that starts this program, for hints that can be pasted: the binary by its name, a checkout by npx. */
export const invocation = IS_COMPILED ? 'atoll' : 'npx atoll'
