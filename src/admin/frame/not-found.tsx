import { EmptyState } from '../ui/empty-state'

/** What an address shows that leads nowhere. */
export const NotFound = () => <EmptyState text="There is no such page." action={{ label: 'Go home', to: '/home' }} />
