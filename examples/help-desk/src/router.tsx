import { type ComponentProps, type MouseEvent, useSyncExternalStore } from 'react'

const subscribe = (onChange: () => void) => {
  addEventListener('popstate', onChange)
  return () => removeEventListener('popstate', onChange)
}

/** The path of the page, such as `/tickets/abc`. */
export const usePath = () => useSyncExternalStore(subscribe, () => location.pathname)

export function navigate(path: string) {
  history.pushState(null, '', path)
  dispatchEvent(new PopStateEvent('popstate'))
}

/** A link to another path of this application. */
export function Link({ href, ...rest }: ComponentProps<'a'> & { href: string }) {
  const path = usePath()
  const follow = (event: MouseEvent) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return // for another tab or window
    event.preventDefault()
    navigate(href)
  }
  return <a href={href} onClick={follow} aria-current={path === href ? 'page' : undefined} {...rest} />
}
