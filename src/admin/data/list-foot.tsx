import { Text } from '@mantine/core'
import type { LiveState } from '../api/event-stream'
import classes from './list-foot.module.css'

const LIVE_WORDS: Record<LiveState, string> = { live: 'live', connecting: 'connecting…', off: 'not live' }

type ListFootProps = { count: number; isFiltered: boolean; name: string; live: LiveState }

/** How many entities a list has, and whether it follows their changes. */
export const ListFoot = ({ count, isFiltered, name, live }: ListFootProps) => (
  <Text size="xs" c="dimmed" px="md" py={6} component="div" className={classes.foot}>
    <span role="status" className={classes.count}>
      {count.toLocaleString()} {isFiltered ? 'shown' : name.toLowerCase()}
    </span>
    <span title={live === 'live' ? 'Changes by others appear immediately.' : undefined}>
      {LIVE_WORDS[live]} <span className={`${classes.dot} ${live === 'live' ? classes.live : ''}`} aria-hidden />
    </span>
  </Text>
)
