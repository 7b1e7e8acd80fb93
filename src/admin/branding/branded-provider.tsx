import { MantineProvider } from '@mantine/core'
import { type ReactNode, useEffect, useMemo } from 'react'
import { createPageTheme } from '../theme'
import { useBranding } from './tenant-brand'

const NO_ICON = 'data:,'

type BrandedProviderProps = { nonce: string; children: ReactNode }

/** Gives the page the tenant's accent colour, and its logo as the icon of the tab. */
export function BrandedProvider({ nonce, children }: BrandedProviderProps) {
  const { accentColor, logo } = useBranding()
  const theme = useMemo(() => createPageTheme(accentColor), [accentColor])
  useEffect(() => {
    document.querySelector<HTMLLinkElement>('link[rel=icon]')?.setAttribute('href', logo ?? NO_ICON)
  }, [logo])
  return (
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => nonce}>
      {children}
    </MantineProvider>
  )
}
