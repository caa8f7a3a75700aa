// function_names.c - the name of the function at an address, from the symbol table of the file it was loaded
// from. The functions in which suspended tasks resume are local symbols, so the dynamic linker does not know
// them.

#include "CTaskHooks.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

char *swift_demangle(const char *name, size_t length, char *buffer, size_t *size, uint32_t flags);

/// The mangled name of the function at an offset of a file, or null.
static const char *find(const char *file, size_t size, size_t offset)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)(const void *)file;
    if (size < sizeof *header || memcmp(file, ELFMAG, SELFMAG) != 0 ||
        header->e_shoff + header->e_shnum * sizeof(ElfW(Shdr)) > size) {
        return NULL;
    }
    const ElfW(Shdr) *sections = (const ElfW(Shdr) *)(const void *)(file + header->e_shoff);
    for (size_t i = 0; i < header->e_shnum; i++) {
        const ElfW(Shdr) *table = &sections[i];
        if (table->sh_type != SHT_SYMTAB || table->sh_link >= header->e_shnum ||
            table->sh_offset + table->sh_size > size) {
            continue;
        }
        const ElfW(Shdr) *names = &sections[table->sh_link];
        const ElfW(Sym) *symbols = (const ElfW(Sym) *)(const void *)(file + table->sh_offset);
        for (size_t k = 0; k < table->sh_size / sizeof *symbols; k++) {
            const ElfW(Sym) *symbol = &symbols[k];
            if ((symbol->st_info & 0xf) == STT_FUNC && symbol->st_value <= offset &&
                offset - symbol->st_value < symbol->st_size && symbol->st_name < names->sh_size &&
                names->sh_offset + names->sh_size <= size) {
                return file + names->sh_offset + symbol->st_name;
            }
        }
    }
    return NULL;
}

char *task_hooks_function_at(const void *address)
{
    Dl_info found;
    if (dladdr(address, &found) == 0 || found.dli_fname == NULL) {
        return NULL;
    }
    // The name of a program is the one it was started by, which is not always its path.
    int file = open(found.dli_fname, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    }
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) {
        if (file >= 0) {
            close(file);
        }
        return NULL;
    }
    size_t size = (size_t)status.st_size;
    const char *content = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (content == MAP_FAILED) {
        return NULL;
    }
    const char *name = find(content, size, (size_t)((const char *)address - (const char *)found.dli_fbase));
    char *answer = name == NULL ? NULL : swift_demangle(name, strlen(name), NULL, NULL, 0);
    munmap((void *)(uintptr_t)content, size);
    return answer;
}
