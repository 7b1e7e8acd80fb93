import './mantine-styles'
import '@mantine/notifications/styles.css'
import './page.css'
import { Notifications } from '@mantine/notifications'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { createRoot } from 'react-dom/client'
import { queryClient } from './api/queries'
import { rememberNamedTenant } from './api/session'
import { BrandedProvider } from './branding/branded-provider'
import { router } from './routes'
import { readCspNonce } from './ui/csp-nonce'

rememberNamedTenant()
const nonce = readCspNonce()
// The package that keeps the page from scrolling behind dialogs reads it there.
Object.assign(globalThis, { __webpack_nonce__: nonce })

createRoot(document.getElementById('root')!).render(
  <QueryClientProvider client={queryClient}>
    <BrandedProvider nonce={nonce}>
      <RouterProvider router={router} />
      <Notifications position="top-center" limit={3} />
    </BrandedProvider>
  </QueryClientProvider>,
)
