// sites.c - places in a source whose language has no static data in expressions.

#include "explorer.h"

enum { SITES_MOST = 4096 };

const explorer_site *explorer_site_at(const char *file, int line, const char *what)
{
    static explorer_site sites[SITES_MOST];
    static int count;
    for (int index = 0; index < count; index++) {
        if (sites[index].line == line && sites[index].what == what && sites[index].file == file) {
            return &sites[index];
        }
    }
    if (count == SITES_MOST) {
        static const explorer_site more = {"?", 0, "more places than the explorer tells apart"};
        return &more;
    }
    sites[count] = (explorer_site){file, line, what};
    return &sites[count++];
}
