import { Menu, UnstyledButton } from '@mantine/core'
import { IconBook, IconLogout, IconUser } from '@tabler/icons-react'
import { Link } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import { removeAllDrafts } from '../api/drafts'
import type { Me } from '../api/schema'
import { impersonation } from '../api/session'
import { showProblem } from '../ui/notices'
import classes from './account-menu.module.css'

async function signOut() {
  // The server does not let an admin end the session of the user as whom they act.
  impersonation.set(undefined)
  await fetchData(api.POST('/api/logout'))
  removeAllDrafts()
  location.assign('/admin')
}

/** The user's name with what concerns their own account. */
export function AccountMenu({ me }: { me: Me }) {
  return (
    <Menu position="top-start" width={200}>
      <Menu.Target>
        <UnstyledButton className={classes.target} aria-label={`Account of ${me.username}`}>
          {me.name || me.username}
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{me.email || me.username}</Menu.Label>
        <Menu.Item leftSection={<IconUser size={16} />} component={Link} to="/account">
          Your account
        </Menu.Item>
        <Menu.Item leftSection={<IconBook size={16} />} component="a" href="/openapi" target="_blank">
          API reference
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item leftSection={<IconLogout size={16} />} onClick={() => signOut().catch(showProblem)}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
