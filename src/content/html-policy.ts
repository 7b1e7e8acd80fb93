import type { IOptions } from 'sanitize-html'
import { dependencies } from '../../package.json'
import { sha256 } from '../core/crypto'

const GLOBAL_ATTRIBUTES = ['class', 'title', 'lang', 'dir', 'role', 'aria-*']

/**
 * The HTML that the sanitizer keeps: text and its structure, links and media. It drops everything that runs, loads a
 * page or looks like a form; `style`, which could cover the page; `id` and `name`, which would become variables in
 * scripts of the page; and `srcset`, whose parser writes rejected values to the log.
 */
export const sanitizePolicy: IOptions = {
  allowedTags: [
    ...['h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hgroup', 'header', 'footer', 'main', 'nav', 'section', 'article', 'aside'],
    ...['address', 'div', 'p', 'blockquote', 'pre', 'figure', 'figcaption', 'hr', 'ul', 'ol', 'li', 'dl', 'dt', 'dd'],
    ...[
      'a',
      'abbr',
      'b',
      'bdi',
      'bdo',
      'br',
      'cite',
      'code',
      'data',
      'del',
      'dfn',
      'em',
      'i',
      'ins',
      'kbd',
      'mark',
      'q',
    ],
    ...['rp', 'rt', 'ruby', 's', 'samp', 'small', 'span', 'strong', 'sub', 'sup', 'time', 'u', 'var', 'wbr'],
    ...['table', 'caption', 'colgroup', 'col', 'thead', 'tbody', 'tfoot', 'tr', 'th', 'td', 'details', 'summary'],
    ...['img', 'video', 'audio', 'source'],
  ],
  allowedAttributes: {
    '*': GLOBAL_ATTRIBUTES,
    a: ['href', { name: 'target', values: ['_blank'] }],
    blockquote: ['cite'],
    col: ['span'],
    colgroup: ['span'],
    data: ['value'],
    del: ['cite', 'datetime'],
    details: ['open'],
    img: ['src', 'alt', 'width', 'height', 'loading'],
    ins: ['cite', 'datetime'],
    li: ['value'],
    ol: ['start', 'reversed', 'type'],
    q: ['cite'],
    source: ['src', 'type'],
    td: ['colspan', 'rowspan', 'headers'],
    th: ['colspan', 'rowspan', 'headers', 'scope'],
    time: ['datetime'],
    audio: ['src', 'controls'],
    video: ['src', 'poster', 'controls', 'width', 'height'],
  },
  allowedSchemes: ['http', 'https', 'mailto', 'tel'],
  allowedSchemesByTag: Object.fromEntries(['img', 'source', 'audio', 'video'].map((tag) => [tag, ['http', 'https']])),
  parseStyleAttributes: false,
}

/** The maximum nesting of elements: the sanitizer's work for each tag grows with it. */
export const MAX_ELEMENT_DEPTH = 128

/** A hash that changes with the policy and with the version of the sanitizer. */
export const POLICY_VERSION = sha256(
  JSON.stringify([sanitizePolicy, MAX_ELEMENT_DEPTH, dependencies['sanitize-html']]),
).slice(0, 16)
