import { EmptyState } from '../ui/empty-state'
import { Screen } from '../ui/screen'
import type { Page } from './section'

/** What an address shows that leads to a page for other roles. */
export const ClosedPage = ({ page: { label, roles = [] } }: { page: Page }) => (
  <Screen title={label}>
    <EmptyState
      text={`Only users with the role ${roles.join(' or ')} see this page. Ask an administrator.`}
      action={{ label: 'Go home', to: '/home' }}
    />
  </Screen>
)
