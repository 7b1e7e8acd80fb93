import { useMediaQuery } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { Outlet, useLocation } from '@tanstack/react-router'
import { useObservable } from '../api/observable'
import { meQuery } from '../api/queries'
import { impersonation, signInRequest } from '../api/session'
import { suspension } from '../api/suspension'
import { Brand } from '../branding/brand'
import { findClosedPage, listSections } from '../sections'
import { SignIn } from '../sign-in/sign-in'
import { SignInAgain } from '../sign-in/sign-in-again'
import { Tray } from '../tray/tray'
import { Confirmation } from '../ui/confirmation'
import { ProblemMessage } from '../ui/problem-message'
import { AccountMenu } from './account-menu'
import { ClosedPage } from './closed-page'
import { ColorSchemeButton } from './color-scheme-button'
import { CommandPaletteButton, CommandPalettePlace } from './command-palette-button'
import { ConnectionStatus } from './connection-status'
import classes from './frame.module.css'
import { ImpersonationBanner } from './impersonation-banner'
import { KeyboardHelp } from './keyboard-help'
import { PhoneBar } from './phone-bar'
import { ProofDialog } from './proof-dialog'
import { SectionLinks } from './section-links'
import { SectionTabs } from './section-tabs'
import { Suspended, SuspendedDialog } from './suspended'

/** The side bar and the place for screens. Without a session it shows the sign-in instead. */
export function Frame() {
  const me = useQuery(meQuery)
  const actingAs = useObservable(impersonation)
  const signIn = useObservable(signInRequest)
  const { pathname } = useLocation()
  const isPhone = useMediaQuery('(max-width: 640px)') ?? false
  const isSuspended = useObservable(suspension) === 'suspended'
  if (isSuspended && !me.data) return <Suspended />
  if (me.isPending) return null
  // Who works goes on with what is there.
  if (!me.data) return me.error ? <ProblemMessage error={me.error} /> : <SignIn />
  const sections = listSections(me.data.roles)
  const closedPage = findClosedPage(pathname, me.data.roles)
  const current = sections.find(({ path }) => pathname === path || pathname.startsWith(`${path}/`))
  const find = <CommandPaletteButton isPhone={isPhone} />
  const foot = (
    <>
      <ColorSchemeButton />
      <AccountMenu me={me.data} />
    </>
  )
  return (
    <div className={classes.frame}>
      <a className={classes.skip} href="#screen">
        Skip to content
      </a>
      {isPhone ? (
        <PhoneBar sections={sections} current={current} find={find} foot={foot} />
      ) : (
        <nav className={classes.sidebar} aria-label="Main">
          <div className={classes.brand}>
            <Brand nameClass={classes.name} />
          </div>
          {find}
          <SectionLinks sections={sections} current={current} />
          <div className={classes.foot}>{foot}</div>
        </nav>
      )}
      <main className={classes.main} id="screen" tabIndex={-1}>
        {actingAs && <ImpersonationBanner actingAs={actingAs} />}
        <ConnectionStatus />
        {current && current.pages.length > 1 && <SectionTabs pages={current.pages} />}
        {closedPage ? <ClosedPage page={closedPage} /> : <Outlet />}
        <Tray />
      </main>
      <CommandPalettePlace me={me.data} />
      <Confirmation />
      <ProofDialog username={me.data.username} />
      <KeyboardHelp />
      {isSuspended && <SuspendedDialog />}
      {signIn === 'expired' && <SignInAgain username={me.data.username} />}
    </div>
  )
}
