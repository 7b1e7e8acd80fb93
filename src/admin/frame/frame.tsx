import { useQuery } from '@tanstack/react-query'
import { Outlet, useLocation } from '@tanstack/react-router'
import { useObservable } from '../api/observable'
import { meQuery } from '../api/queries'
import type { Me } from '../api/schema'
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
import { CommandPaletteButton, LazyCommandPalette } from './command-palette-button'
import { ConnectionStatus } from './connection-status'
import classes from './frame.module.css'
import { HeldCopyBanner } from './held-copy-banner'
import { ImpersonationBanner } from './impersonation-banner'
import { KeyboardHelp } from './keyboard-help'
import { PageLayout, useCurrentSection } from './page-layout'
import { ProofDialog } from './proof-dialog'
import { SectionTabs } from './section-tabs'
import { Suspended, SuspendedDialog } from './suspended'

/** The page of a tenant: the side bar and the screen. Without a session it shows the sign-in instead. */
export function Frame() {
  const me = useQuery(meQuery)
  const actingAs = useObservable(impersonation)
  const isSuspended = useObservable(suspension) === 'suspended'
  // Who works goes on with what is there.
  if (me.data) return <SignedInFrame me={me.data} isSuspended={isSuspended} />
  if (isSuspended) return <Suspended />
  if (me.isPending) return null
  if (!me.error) return <SignIn />
  return (
    <>
      {actingAs && <ImpersonationBanner actingAs={actingAs} />}
      <ProblemMessage error={me.error} />
    </>
  )
}

function SignedInFrame({ me, isSuspended }: { me: Me; isSuspended: boolean }) {
  const actingAs = useObservable(impersonation)
  const signIn = useObservable(signInRequest)
  const { pathname } = useLocation()
  const sections = listSections(me.roles)
  const current = useCurrentSection(sections)
  const closedPage = findClosedPage(pathname, me.roles)
  const foot = (
    <>
      <ColorSchemeButton />
      <AccountMenu me={me} />
    </>
  )
  return (
    <div className={classes.frame}>
      <PageLayout
        sections={sections}
        brand={<Brand nameClass={classes.name} />}
        renderSearch={(isPhone) => <CommandPaletteButton isPhone={isPhone} />}
        foot={foot}
      >
        {actingAs && <ImpersonationBanner actingAs={actingAs} />}
        {me.roles.includes('admin') && <HeldCopyBanner />}
        <ConnectionStatus />
        {current && current.pages.length > 1 && <SectionTabs pages={current.pages} />}
        {closedPage ? <ClosedPage page={closedPage} /> : <Outlet />}
        <Tray />
      </PageLayout>
      <LazyCommandPalette me={me} />
      <Confirmation />
      <ProofDialog username={me.username} />
      <KeyboardHelp />
      {isSuspended && <SuspendedDialog />}
      {signIn === 'expired' && <SignInAgain me={me} />}
    </div>
  )
}
